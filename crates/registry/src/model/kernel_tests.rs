//! The version for AVX2 gives the bits of the one for any machine.

use super::{ACTIVATION_LIMIT, exponential, gelu, gelu_anywhere, multiply, multiply_anywhere};

/// A fixed sequence of numbers without order.
fn scattered(count: usize) -> impl Iterator<Item = u64> {
    (0..count as u64).map(|number| (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 17)
}

#[test]
fn products_are_the_same_and_exact_at_the_limits() {
    for (width, tokens, outputs) in [(16, 1, 1), (384, 3, 5), (384, 4, 8), (1536, 9, 7), (20, 2, 3)] {
        let activations: Vec<i16> = scattered(width * tokens)
            .map(|number| (number % 16_383) as i16 - ACTIVATION_LIMIT as i16)
            .collect();
        let weights: Vec<u8> =
            scattered(width * outputs).map(|number| ((number % 255) as i16 - 127) as i8 as u8).collect();
        let (mut fast, mut plain) = (vec![0; tokens * outputs], vec![0; tokens * outputs]);
        multiply(&activations, &weights, width, &mut fast);
        multiply_anywhere(&activations, &weights, width, &mut plain);
        assert_eq!(fast, plain, "width {width}, tokens {tokens}");
    }
    let mut largest = [0];
    multiply(&[ACTIVATION_LIMIT as i16; 1536], &[(-127_i8) as u8; 1536], 1536, &mut largest);
    assert_eq!(i64::from(largest[0]), -127 * 1536 * i64::from(ACTIVATION_LIMIT as i32));
}

#[test]
fn gelu_is_the_same_and_near_the_true_one() {
    let values: Vec<f32> = scattered(2000).map(|number| (number % 2001) as f32 / 100.0 - 10.0).collect();
    let (mut fast, mut plain) = (values.clone(), values.clone());
    gelu(&mut fast);
    gelu_anywhere(&mut plain);
    assert_eq!(fast, plain);
    for (x, known) in
        [(0.0, 0.0), (1.0, 0.841_344_7), (-1.0, -0.158_655_25), (3.0, 2.995_950_3), (-10.0, 0.0)]
    {
        let mut value = [x];
        gelu(&mut value);
        assert!((value[0] - known).abs() < 1e-5, "gelu({x}) = {}", value[0]);
    }
    for x in [0.0_f32, -0.1, -1.0, -20.0, -86.0, -1000.0] {
        assert!((exponential(x) - x.exp()).abs() < 1e-6, "e^{x}");
    }
}
