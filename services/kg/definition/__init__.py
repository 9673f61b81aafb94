"""From the files of a domain's folder to the objects of the service."""
