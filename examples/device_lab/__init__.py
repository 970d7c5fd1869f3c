"""Programs with devices in virtual time, faults whose cost is known exactly, and what gapwatch says of them."""
