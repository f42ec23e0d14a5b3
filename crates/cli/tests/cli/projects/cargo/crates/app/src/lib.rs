//! The application.

pub fn label(title: &str) -> String {
    format!("#{}", shop_core::slug(title))
}
