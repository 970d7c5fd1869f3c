"""One module for each library whose timing tables are read."""
