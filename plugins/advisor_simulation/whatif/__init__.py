"""What would a change win: changes tried on a measured run, phase by phase and iteration by iteration."""
