import { DescribeTableCommand, DescribeTimeToLiveCommand, } from "@aws-sdk/client-dynamodb";
import { AdminRequests } from "./admin-requests.js";
export class ControlPlane extends AdminRequests {
    #transport;
    constructor(transport, options) {
        super(options);
        this.#transport = transport;
    }
    command(action, make) {
        return this.ask(action, (signal) => this.#transport.sendCommand(make(), action, signal));
    }
    async describeTable() {
        const make = () => new DescribeTableCommand({ TableName: this.tableName });
        return (await this.command("DescribeTable", make)).Table;
    }
    async describeTtl() {
        const make = () => new DescribeTimeToLiveCommand({ TableName: this.tableName });
        const reply = await this.command("DescribeTimeToLive", make);
        return reply.TimeToLiveDescription;
    }
}
