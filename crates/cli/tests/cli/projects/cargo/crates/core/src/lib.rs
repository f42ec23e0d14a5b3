//! The shop.

mod util;

pub fn slug(title: &str) -> String {
    title.to_lowercase().replacen(' ', "-", 1)
}

pub fn price(amount: f64) -> String {
    format!("{} ct", util::cents(amount))
}
