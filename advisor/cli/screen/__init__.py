"""The screen to work with: programs to choose from, their gaps and items, keys for what can be done with them."""
