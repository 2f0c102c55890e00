"""The operations of the API, one module a kind of resource; importing `all_operations` registers them."""
