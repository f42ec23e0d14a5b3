pub fn cents(amount: f64) -> i64 {
    let scaled = amount * 100.0;
    let rounded = scaled.round();
    rounded as i64
}
