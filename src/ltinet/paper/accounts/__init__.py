"""What the paper says about each example beside what is found here: text, numbers with verdicts, figures."""
