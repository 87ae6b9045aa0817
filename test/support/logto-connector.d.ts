/** The package has no types. */
declare module '@logto/connector-http-email' {
  type Connector = { sendMessage(data: object): Promise<unknown> }
  export default function createConnector(options: { getConfig: () => Promise<unknown> }): Promise<Connector>
}
