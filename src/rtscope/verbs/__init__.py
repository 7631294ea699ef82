"""One room for each verb, or family of verbs; none imports another."""
