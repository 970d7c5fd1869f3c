"""What the recorder of ``gapwatch run`` leaves behind: directories of the format ``gapwatch/trace/1``."""
