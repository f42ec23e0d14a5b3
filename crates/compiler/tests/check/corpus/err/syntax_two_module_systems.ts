import { z } from 'zod';

/** A module of both kinds. */
module.exports = (args: { value: unknown }) => z.string().parse(args.value);
