import { cents } from './util.ts';

export function slug(title: string): string {
  return title.toLowerCase().replace(' ', '-');
}

export function price(amount: number): string {
  return `${cents(amount)} ct`;
}
