"""Model-driven simulation: a program's model executed on a machine model (Hung and Davidson, section 3.3.2)."""
