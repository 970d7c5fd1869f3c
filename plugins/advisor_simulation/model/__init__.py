"""The application modelling language: what a program does, without the program (Hung and Davidson, section 3.3.1)."""
