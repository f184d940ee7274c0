print("urlsessiond")
