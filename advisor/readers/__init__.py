"""One module per file format; each is found through its entry point, like any other plugin."""
