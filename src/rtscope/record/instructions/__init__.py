"""What a virtual board executed: the plugin's records, symbols, and a listing."""
