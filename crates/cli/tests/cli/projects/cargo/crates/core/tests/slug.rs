use shop_core::{price, slug};

#[test]
fn joins_all_words() {
    assert_eq!(slug("Blue ink pen"), "blue-ink-pen");
}

#[test]
fn counts_cents() {
    assert_eq!(price(1.5), "150 ct");
}
