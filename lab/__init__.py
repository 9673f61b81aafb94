"""What measures, teaches and drafts; it imports services, and no service imports it."""
