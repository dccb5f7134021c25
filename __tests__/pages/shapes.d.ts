/**
 * The parts of frameworks that the documentation's examples touch, as the frameworks declare them. They are not installed: their packages
 * are heavier than this one. The examples were compiled against the real types of aws-cdk-lib 2.276 and @nestjs/config 12.0
 * when they were written.
 */

declare module "aws-cdk-lib/aws-lambda-nodejs" {
  export enum OutputFormat {
    ESM = "esm",
  }
  export class NodejsFunction {
    constructor(
      scope: unknown,
      id: string,
      props: {
        readonly entry: string;
        readonly bundling: {
          readonly format: OutputFormat;
          readonly mainFields: readonly string[];
          readonly bundleAwsSDK: boolean;
          readonly banner: string;
        };
      },
    );
  }
}

declare module "@nestjs/config" {
  export class ConfigModule {}
  export class ConfigService {
    getOrThrow<Value>(name: string): Value;
  }
}
