"""Reading what tools record: a package per tool, found through its entry point like any other plugin.

The modules beside the packages are what the readers share. Nothing outside names one of the packages.
"""
