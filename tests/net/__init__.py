"""Every verb's output, held by digests, while the modules behind it move."""
