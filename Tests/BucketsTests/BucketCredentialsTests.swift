import Buckets
import Testing

struct BucketCredentialsTests {
    private func credentials(_ profile: String, _ text: String) -> BucketCredentials? {
        BucketCredentials(profile: profile, ofFile: Array(text.utf8))
    }

    @Test func `A profile has its own lines, whatever surrounds them`() {
        let file = """
            # comment
            [a]
            aws_access_key_id = A
            aws_secret_access_key=s=/+
            ; aws_session_token = no

              [ b ]
            aws_secret_access_key =  t \r
            aws_access_key_id\t=\tB
            aws_session_token = x
            region = r
            [c]
            aws_access_key_id = C
            """
        #expect(credentials("a", file) == BucketCredentials(accessKeyID: "A", secretAccessKey: "s=/+"))
        #expect(
            credentials("b", file) == BucketCredentials(accessKeyID: "B", secretAccessKey: "t", sessionToken: "x"))
        #expect(credentials("c", file) == nil && credentials("d", file) == nil && credentials("", "") == nil)
    }

    @Test func `The environment must have both variables`() {
        #expect(BucketCredentials(environment: ["AWS_ACCESS_KEY_ID": "i"]) == nil)
        let whole = ["AWS_ACCESS_KEY_ID": "i", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": "t"]
        #expect(
            BucketCredentials(environment: whole)
                == BucketCredentials(accessKeyID: "i", secretAccessKey: "s", sessionToken: "t"))
    }
}
