//! The endpoints file and the settings, validated.
