"""What can go wrong between a checkout and a serving model."""


class GeneratorError(Exception):
    """The generator cannot be prepared or launched; the message says why and, where known, which command helps."""
