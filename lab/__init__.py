"""What measures and teaches; it imports services, and no service imports it."""
