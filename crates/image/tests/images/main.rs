//! Images to and from files, parts of them, other sizes, and the steps to a network's input.

mod decode;
mod pixels;
mod prepare;
mod resize;
