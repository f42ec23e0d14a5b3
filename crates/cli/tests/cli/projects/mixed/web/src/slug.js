import { cents } from './util.js';

export function slug(title) {
  return title.toLowerCase().replace(' ', '-');
}

export function price(amount) {
  return `${cents(amount)} ct`;
}
