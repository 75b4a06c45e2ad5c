"""File formats, one module each: `list_variables(path)`, `read(path, names)` and `write(path, matrices)`.

They raise whatever their libraries raise; `ltinet.model.files`, the only caller, turns that into one clear line.
"""
