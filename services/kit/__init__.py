"""The shared kernel: what every service needs to be one, and nothing that only one of them needs."""
