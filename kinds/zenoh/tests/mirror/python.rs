//! What is said in Python.
