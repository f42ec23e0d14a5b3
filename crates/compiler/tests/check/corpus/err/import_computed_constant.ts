/** Computed, but no secret. */
export default async () => [await import('f' + 's'), require(['f', 's'].join(''))];
