//! Tests of the framework against real servers, in one binary so that they share them.

mod store;
