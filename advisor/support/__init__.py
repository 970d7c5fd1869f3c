"""What any program of this kind needs: documents with places, strict JSON, whole files, a cache, compiled loops.

Nothing in here knows what a profile is.
"""
