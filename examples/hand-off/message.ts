/** What the shop tells the packers of an order. The token says that the order is locked, and lets one of them go on. */
export interface OrderMessage {
  readonly order: string;
  readonly token: string;
}
