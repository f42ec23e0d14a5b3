import { describe, expect, it } from '@tgp/test';
import temperature from './temperature';

describe('temperature', () => {
  it('converts the boiling point', () => {
    expect(temperature({ value: 100, from: 'C', to: 'F' })).toBeCloseTo(212, 6);
    expect(temperature({ value: 212, from: 'F', to: 'K' })).toBeCloseTo(373.15, 6);
  });
});
