"""A large sparse model run as it is, by an implicit method on sparse matrices: what reduced models are judged by."""
