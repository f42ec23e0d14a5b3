/* Area of a circle. */
const radius = args.radius ?? args.diameter / 2;
const area = Math.PI * radius ** 2;
`${area.toFixed(args.digits)} m²`;
