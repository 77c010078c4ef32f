//! The bridge to the core: its newest messages as values, commands into its mailboxes.
