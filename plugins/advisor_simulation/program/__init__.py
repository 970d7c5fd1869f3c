"""From a program to its application model: its code, its accesses to memory as a tracer sees them, and its messages."""
