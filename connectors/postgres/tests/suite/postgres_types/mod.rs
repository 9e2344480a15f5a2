//! Column types: each takes what the documentation says, by every way of writing, and gives back what the server makes of the text.

mod altered;
mod documented;
mod domains;
mod enums;
mod every_path;
mod keys;
mod times;
mod values;
