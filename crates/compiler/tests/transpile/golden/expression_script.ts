'use strict';
enum Colour { Red = 1, Green }
type Args = { n: number };
const twice = (value: number): number => value * 2;
const lookup = await Promise.resolve(new Map([[1, 'a']]));
({ n: twice((args as Args).n), colour: Colour[Colour.Green], lookup: lookup.get(1) });

function later(): void {}
