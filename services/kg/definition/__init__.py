"""Reading what a domain's folder says into the objects that the service works with."""
