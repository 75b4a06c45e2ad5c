"""What leaves: systems as other libraries hold them, samples as files."""
