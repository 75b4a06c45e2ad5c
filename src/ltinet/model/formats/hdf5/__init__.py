"""A small strict reader of HDF5, as far as MATLAB's version 7.3 needs it: groups, datasets and attributes of one file.

The HDF5 library follows links into other files, keeps data in them, and was written for files that can be trusted: its
list of memory errors on damaged ones is long. Here every address and every length is checked against the file, nothing
outside of it is read, no tree is walked twice, and what MATLAB never writes is refused by its name.
The numbers in these modules are those of the "HDF5 File Format Specification, version 3.0".
"""
