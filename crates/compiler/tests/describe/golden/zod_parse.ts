import { z } from 'zod';
/** Scales a list. */
const { values, factor } = z.object({ values: z.number().array(), factor: z.coerce.number().default(2) }).parse(args);
values.map((value) => value * factor);
