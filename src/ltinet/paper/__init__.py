"""The paper's four examples: computed by one module each, told in `accounts`, written as a report by `reproduce`."""
