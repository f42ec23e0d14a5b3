/** A customer of the shop. */
export interface Customer { id: string; name: string }
export type CustomerId = Customer['id'];
