"""What strategies are made of: each step is one stage of a run, testable alone."""
