"""The records that flow through the pipeline, from the profile to the advice; reports, units and errors.

Imports from no other room.
"""
